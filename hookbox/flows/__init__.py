"""Floor 3: flows. One file tells one story, from what arrives to what is durable."""
