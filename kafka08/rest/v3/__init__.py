"""API v3: resources with links; clusters, topics, groups, records."""
