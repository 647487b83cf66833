"""What runs on the machine: chips, models, costs of a pass, requests, serving token by token. No clock."""
