"""Options of its own that the runner for Kubernetes has. Imports nothing heavy, because help reads it."""

from __future__ import annotations

from gantline.live.runner_options import RunnerOption

OPTIONS = (
    RunnerOption("kubeconfig", "The cluster and who we are there. By default as kubectl finds it, or the service account of this pod."),
    RunnerOption("context", "A context of the kubeconfig; by default its current one."),
    RunnerOption("namespace", "Where the pods of jobs are; by default the context's."),
    RunnerOption("image", "The image of jobs that name none."),
    RunnerOption("checkpoints", "A volume that all nodes see, for saved work: the name of a claim, or /a/path of every node."),
    RunnerOption("gang-timeout", "After so many seconds a gang whose pods do not all run is given back.", "300"),
)
