// Package trial evaluates policies against objects that documents give, without a cluster: what policies look
// up is found among the documents, and what is not there is unknown. quaymaster apply and the playground
// share it. Documents and results are those of package evaluation (Kyverno 1.19, "kyverno apply").
package trial
