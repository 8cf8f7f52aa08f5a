"""The views of a job's account: a page for the customer, Markdown, and a workbook, all of the same sheets."""
