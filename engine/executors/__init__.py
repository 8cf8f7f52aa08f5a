"""Who runs a load's key ranges: this process, processes beside it, or a Dask cluster."""
