// Package configuration answers: for which requests must the API server ask us?
//
// Build makes the two webhook configurations from the policies and from what the
// API server serves; it is pure, and equal input gives equal output. A Reconciler
// keeps them so in the cluster. It follows admissionregistration.k8s.io/v1 of
// Kubernetes 1.36 and needs 1.30 or later (matchConditions).
//
// # One call a phase
//
// Each operation on a resource of a namespace stands in exactly one webhook of
// each configuration, so that one admission costs one call to /mutate and one to
// /validate, however many policies speak of it. That webhook fails closed if one
// policy does that can speak of the resource there, and waits as long as the most
// patient of them; what a single policy says about failing is honoured by the
// engine, which knows them apart. A policy of which nothing enforces does not
// close it: an audit never stops anybody. Resources that agree in this share a
// webhook.
//
// Where all images are in spec, an update that leaves spec alone is not asked
// about (matchConditions), unless it changes the annotation that keeps the images
// as they were written. The API server copies the object to find that out; so
// UPDATE has a webhook with the condition, and CREATE, to which it would never say
// no, a second one without it, which is equal in all else (see split.go).
//
// # Mirrors
//
// Where mirrors are, Pods are asked about at both doors, also if no policy speaks of
// them: an image may be redirected. That alone never closes a webhook, for an image
// that is not redirected is pulled from where it was written; an entry that denies
// what no target qualifies for does.
//
// # What is gone
//
// A policy, or mirrors, that are gone are asked about for five seconds more: who deletes
// a policy and makes it again leaves no time in which it is in force and nobody asks. A
// policy that is changed counts at once as it is now.
//
// # Who decides where
//
// A policy that is confined to literal namespaces, as one of a namespace is, makes
// no difference elsewhere. Namespaces whose policies come to another result than
// those of the whole cluster have a webhook of their own, which selects them, and
// the general one leaves them out. That is bounded (see divide.go); beyond, the
// strictest setting and the longest timeout count for all, and a Warning says so.
// One who may write policies in very many namespaces can bring that about.
//
// Where all policies on a resource hold only in namespaces with one label, the
// webhook selects by it: elsewhere nobody waits for the gateway.
//
// # Break glass
//
// With Input.BreakGlass no webhook selects a namespace that carries that label, whatever
// its value: the API server decides that by itself, also where nothing else runs. Who
// may set it is not decided here. Objects of the cluster have no namespace and are asked
// about as before; so are policies and exceptions, in whatever namespace, for they
// say what holds when the glass is whole again, and nobody waits for their door.
//
// A selector of namespaces is held against a Namespace's own labels, as the request
// leaves them: one that sets the label would not be asked about, nor one that makes a
// namespace with it. Namespaces have webhooks of their own that select nothing by the
// label, and a condition that leaves out those updates alone after which it is there:
// it can be set, and kept, while a gateway is away for which a rule about Namespaces
// would wait. Making, deleting, and taking the label off again are asked about.
//
// # Shadow
//
// With Input.Shadow everything is asked about that is asked about else, in the
// validating configuration alone, at a door that refuses nothing: who is called there
// cannot change an object. Such a webhook never closes, and waits for shadowSeconds. It
// leaves out namespaces with the label ModeLabel of the value ModeEnforce, and webhooks
// that are as they would be without a shadow select those and no others. The API server
// reads the label for each; whatever enforced before is to leave the same namespaces out
// by a selector of its own, so that one label says which of the two does. The shadow of a
// namespace's own object goes by that object's labels, as the request leaves them. What
// is in no namespace stays in the shadow. A shadow and what is enforced beside it have
// half of the bounds each.
//
// # Versions
//
// The API server converts an object for a webhook (matchPolicy Equivalent) only if
// the version in which it came is not listed. So those versions are listed of
// which every policy on the resource speaks. Where there is none, those that some
// name are, and a Warning says to whom an object may not be shown. A namespace's
// own policies never take an object from those of the cluster by what they name.
//
// # When discovery fails in part
//
// Resources are remembered from round to round, and by an annotation of the
// validating configuration for a replica that comes to lead meanwhile. Kinds of a
// group that failed, and of which no policy spoke before, are asked about when it
// is back.
//
// # Kinds that are asked about if a rule names them
//
// A cluster whose gateway is down must be able to repair itself, and what the gateway
// writes must not wait for it. So Namespaces, Nodes, Bindings, certificate requests,
// CustomResourceDefinitions, APIServices, Leases and Events are asked about only for a rule
// about objects that names their kind; a pattern does not name them. For all of these but
// Namespaces a request without an answer is admitted, whatever the policy's failurePolicy
// is, and Stated returns that for the policy's condition. Leases and Events of kube-system,
// kube-node-lease and the gateway's namespace, and those that the gateway's accounts write,
// are not asked about at all, and the API server waits for at most recordSeconds.
//
// Reviews of tokens and access, objects of admissionregistration.k8s.io, documents of
// policies and reports are never asked about. Dialects refuse rules that name one of the
// first two; see policy.Unasked.
//
// # Images and objects
//
// A rule about images is asked where some come: a kind that is a pattern, such as *,
// means Pods and their controllers, and those that the policy's extractors find images
// in; of subresources only pods/ephemeralcontainers brings some; DELETE and CONNECT
// bring none. A rule about objects is asked at the one door that it is for, about all
// kinds, subresources and operations that it names, and a pattern means every kind.
// So are the creation and the updates of triggers into which it is written who made
// them, which stop nobody.
//
// # Who is not exempt
//
// Except for Leases and Events there is no condition that exempts the gateway's own
// service account: it makes no Pods, so that nothing would be exempt, and a stolen token
// would admit unverified images.
//
// # Probe
//
// A Reconciler adds one webhook to each configuration, for labelled ConfigMaps of the
// gateway's namespace, at a path that ends with the configuration's mark: a hash of its
// webhooks and a salt that is new with each write. An API server that calls the path has
// loaded the configuration whole. See cluster/probe.
//
// # How they go away
//
// The configurations outlive every pod of the gateway: no window opens in which
// nothing is checked. They are owned by the release's ClusterRole, which is
// deleted with everything else in deploy/; the cluster's garbage collector then
// deletes them. Nothing of ours needs to run for that, no hook and no Job, and a
// release of which no pod ever ran has left no configuration behind.
package configuration
