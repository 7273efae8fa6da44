"""Keys written in Python that are read once, and then evaluated by compiled code.

notes.py        columns that note what is done to them     numpy_names.py  what `np` means while a key is read
expression.py   what was noted, as a tree                  linear.py       trees that are a sum of columns
tape.py         a tree as instructions
evaluate.py     the machine that runs them                 table_verbs.py  the verbs of the loop on the tables
read.py         from a policy to one of these, or why not  hint.py         how long a policy declares its order to hold
questions.py    questions to keys that cannot be read      run.py          what is done when the loop comes back
"""
