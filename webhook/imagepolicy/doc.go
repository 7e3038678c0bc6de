// Package imagepolicy answers: may these images run, for an API server that asks
// by its ImagePolicyWebhook plugin?
//
// A Handler is the door for ImageReviews of imagepolicy.k8s.io/v1alpha1. A review
// names the images of a pod, its namespace and nothing else: neither names nor
// labels, nor who asks, and containers of all roles stand in one list (ephemeral
// ones come in a review of their own). A rule that wants to know more cannot be
// asked, and so denies what it speaks of.
//
// Nothing can be changed by an answer. Where a policy pins and verifies digests, a
// tag is refused by the name that it should have, once it is proved.
//
// The API server remembers answers by the review's content, in each of its
// processes: an allowance for 5 minutes and a denial for 30 seconds, unless its
// allowTTL and denyTTL say otherwise. Until then it does not ask again, whatever
// becomes of policies, signatures and tags.
//
// An answer is a denial, never an HTTP error: an error would be handed to the
// plugin's defaultAllow, which speaks for all policies at once. The pod's
// annotations that come along are not read.
package imagepolicy
