"""What a run leaves behind: its records, the register of figures, and what samples say together. It imports no other
part of the runner, so that reports need nothing else.
"""
