"""Excel workbooks: choose the sheet, and find cells whose values are incomplete."""
