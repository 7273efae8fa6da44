"""ElasticFlow's simulator (ASPLOS 2023): slots, a calendar of merged events, ends seen late, overhead by warm ranges of ranks.

Its rules are in docs/design/elasticflow.md; it has a loop of its own, which runs `elasticflow`,
`edf`, `tiresias`, `gandiva` and `themis`, and no others.
"""

from gantline.engine.regime import Regime

REGIME = Regime(name="elasticflow")
