"""Make the data sets that are stored in measurements.

Tables are synthetic, realistic, from TPC-H, or the user's own. Images and documents are generated, well-known or the
user's own. Every data set is an Arrow table. A generated data set has the same bytes on every machine; its digest
proves this. From the project's other packages, this package imports only the base class of errors.
"""
