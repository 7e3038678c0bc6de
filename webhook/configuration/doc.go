// Package configuration builds the webhook configurations.
//
// Build makes the two configurations from the policies and from the resources that the API server
// serves. It is a pure function: equal input gives equal output. Package reconcile writes the result
// to the cluster. The package follows admissionregistration.k8s.io/v1 of Kubernetes 1.37 and requires
// 1.30 or later (matchConditions).
//
// # One call per phase
//
// Each operation on a resource of a namespace is in exactly one webhook of each configuration. One
// admission request therefore costs one call to /mutate and one to /validate, regardless of the
// number of policies. The webhook fails closed if one enforcing policy that can match the resource
// there fails closed. Its timeout is the longest of these policies. The engine applies the failure
// setting of each single policy. A policy that only audits never makes a webhook fail closed.
// Resources with equal settings share a webhook.
//
// If all images of a kind are in spec, updates that do not change spec are excluded
// (matchConditions), unless they change the annotation with the original images, or a policy selects
// or reads objects by something else, such as labels. The API server
// copies the object to evaluate the condition. The condition is always true for CREATE, so CREATE
// has a second webhook without it, which is otherwise equal (see split.go).
//
// # Mirrors
//
// With mirrors, both configurations include Pods even if no policy matches them, because an image
// may be redirected. Mirrors alone do not make a webhook fail closed: an image that is not
// redirected is pulled from its original registry. An entry that denies images without a qualified
// target does make it fail closed.
//
// # Namespaces
//
// A policy that is limited to literal namespaces, such as a namespaced one, has no effect
// elsewhere. Namespaces with other resulting settings than the cluster have their own webhook that
// selects them, and the general webhooks exclude them, all of them the same ones, so that their
// names and resources do not depend on policies for single namespaces. Their number is limited (see
// divide.go).
// Beyond the limit, the strictest setting and the longest timeout apply to all namespaces, with a
// Warning. A user with write access to policies in very many namespaces can cause that.
//
// If all policies on a resource apply only to namespaces with one label, the webhook selects by
// that label. Requests in other namespaces do not depend on the gateway.
//
// # Break glass
//
// With Input.BreakGlass, no webhook selects a namespace that carries that label, with any value.
// The API server evaluates the selector itself, so it works even if no other component runs.
// Permission to set the label is not decided here. Cluster-scoped objects have no namespace and are
// included as before. Policies and exceptions are included in every namespace: they are in force
// when break glass ends, and their webhook fails open.
//
// For a Namespace, the API server compares a namespace selector with the object's own labels after
// the request. A request that sets the label, or creates a namespace with it, would be excluded.
// Therefore Namespaces have webhooks of their own without this selector. A condition excludes only
// updates after which the label is present. The label can thus be set and kept while the gateway is
// down and a rule about Namespaces fails closed. Creation, deletion, and removal of the label are
// included.
//
// # Shadow
//
// With Input.Shadow, the same requests are sent to an endpoint that never denies, through the
// validating configuration alone, which cannot change an object. These webhooks fail open, with a
// timeout of shadowSeconds. They exclude namespaces with the label ModeLabel and the value
// ModeEnforce; only these have the enforcing webhooks. The API server evaluates the label for each
// request. A previously installed enforcing system should exclude the same namespaces with its own
// selector, so that one label decides which of the two enforces. For a Namespace object, its own
// labels after the request count. Cluster-scoped objects stay in the shadow. The shadow and the
// enforcing webhooks share the limits, half each.
//
// # Versions
//
// The API server converts an object for a webhook (matchPolicy Equivalent) only if the object's
// version is not listed. Therefore the listed versions are those that every policy on the resource
// names. If there are none, the versions that single policies name are listed, and a Warning names
// each policy that can get objects in a version that it does not name. Such objects could not be
// verified. The versions in namespaced policies never hide an object from cluster policies.
//
// # Kinds that a rule must name
//
// A cluster must be repairable while its gateway is down, and the gateway's own writes must not
// wait for it. Therefore Namespaces, Nodes, Bindings, certificate requests,
// CustomResourceDefinitions, APIServices, Leases, Events and the kinds of policies, exceptions and
// mirrors are included only for a rule about objects that names the kind; a pattern does not count.
// For all of these except Namespaces, a request without an answer is admitted regardless of the
// policy's failurePolicy. Deviations returns that for the policy's condition. Policies and the like,
// Leases and Events are excluded if the gateway's accounts write them, the last two in kube-system,
// kube-node-lease and the gateway's namespace too. Their timeout is at most recordSeconds.
//
// Reviews of tokens and access, objects of admissionregistration.k8s.io and reports are never
// included. Dialects reject rules that name one of the first two; see unsent.Why.
//
// # Images and objects
//
// A rule about images includes requests that can contain images. A pattern of kinds, such as *,
// matches Pods, their controllers, and kinds in which the policy's extractors find images. Of the
// subresources, only pods/ephemeralcontainers contains images; DELETE and CONNECT contain none. A
// rule about objects uses one endpoint and includes all kinds, subresources and operations that it
// names; a pattern matches every kind. Triggers with a recorded creator are included with their
// creation and updates, and these webhooks fail open.
//
// # No exemption of the gateway
//
// Except for Leases and Events, no condition exempts the gateway's own service account. It creates
// no Pods, so an exemption has no use, and with it a stolen token could admit unverified images.
//
// # Removal
//
// The configurations outlive the gateway's pods, so verification does not lapse. Their owner is the
// release's ClusterRole, which is deleted with everything else in deploy/. The cluster's garbage
// collector then deletes them. This requires no hook and no Job, and a release that never started a
// pod leaves no configuration behind.
package configuration
