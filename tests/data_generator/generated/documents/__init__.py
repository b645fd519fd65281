"""Tests of data_generator.generated.documents."""
