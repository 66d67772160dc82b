"""One module per competitor: `fit(model, exchange, job)` answers with a `Fitted`."""
