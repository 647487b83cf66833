"""What people see: plots, the page, the terminal table."""
