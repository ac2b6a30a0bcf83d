"""PostgreSQL, through psycopg: one schema per knowledge base. `address.py` says which, `database.py` connects."""
