"""Code that several formats use: codecs of pandas, known changes to data (losses), and base classes for the libraries
that read and write more than one format."""
