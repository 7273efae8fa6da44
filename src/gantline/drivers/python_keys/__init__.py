"""Keys written in Python that are read once, and then evaluated by compiled code.

notes.py        columns that note what is done to them     numpy_names.py  what `np` means while a key is read
expression.py   what was noted, as a tree                  linear.py       trees that a declared key can say
tape.py         a tree as instructions                     numpy_loops.py  NumPy's own loops, which carry them out
evaluate.py     the machine that runs them                 loop.py         the loop of decisions around it
read.py         from a policy to one of these, or why not
questions.py    questions to keys that cannot be read      watched.py      what they read, and so how long an answer holds
on_records.py   questions about some jobs, on records      record_loop.py  the loop around them
"""
