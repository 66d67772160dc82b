"""What people read: a scorecard as text, Markdown, LaTeX and a page for the browser."""
