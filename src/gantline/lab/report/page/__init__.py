"""The parts of the HTML report: its tables, its choice of figures, its jobs, and the style and script it carries."""
