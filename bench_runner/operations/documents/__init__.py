"""Operations on documents: storing with changes, finding by key, reading fields, answering questions.

Saving and reading all documents are in bench_runner.operations.whole, as for tables and images.
"""
