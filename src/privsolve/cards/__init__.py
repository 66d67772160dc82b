"""What people read: a scorecard as text, Markdown and a page for the browser."""
