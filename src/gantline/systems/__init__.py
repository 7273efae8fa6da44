"""Published systems, one folder each: policies, imitation, regime, importer, generator and studies, named in one manifest."""
