"""Floor 2, room: the database, and the only place that knows SQL.

Flows speak to it in domain words: a function that reads or writes takes the open transaction first,
and never begins or commits one. Only `writer` (in the server) and `database.exclusive` (a command
while the server is stopped) do.
"""
