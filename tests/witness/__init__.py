"""Each witness shows one durability promise kept, and catches a planted fault."""
