"""What is built here because nobody else has it. Each library is usable without the rest of the project, and measured
like any other.
"""
