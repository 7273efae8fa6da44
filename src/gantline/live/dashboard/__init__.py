"""The web page of a service: plain ES modules in `static/`, served as they are."""
