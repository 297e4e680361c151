"""The description of all that the proxy serves, in the form of OpenAPI 3.0."""
