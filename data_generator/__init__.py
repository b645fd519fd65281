"""Make the data sets that are stored in measurements.

Tables are synthetic, realistic, from TPC-H, or the user's own. Images and documents are generated, from well-known data
sets, or the user's own. Every data set is an Arrow table. A generated data set has the same bytes on every machine, and
its digest (a hash of the content) shows whether this is so. From the project's other packages, this package imports
only the base class of errors.
"""
