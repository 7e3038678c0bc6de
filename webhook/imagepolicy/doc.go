// Package imagepolicy implements the backend of the API server's ImagePolicyWebhook plugin.
//
// A Handler serves ImageReviews of imagepolicy.k8s.io/v1alpha1. A review contains the images of a
// pod and its namespace, without names, labels or the user. Containers of all roles are in one
// list; ephemeral ones come in a review of their own. A rule that needs more cannot be evaluated,
// and denies the images that it matches.
//
// A response cannot change the pod. If a policy pins and verifies digests, a tag is denied, with
// the exact name to use once the image is verified.
//
// Each process of the API server caches responses by the review's content: an allowed review for 5
// minutes and a denied one for 30 seconds, unless its allowTTL and denyTTL change that. Changes of
// policies, signatures and tags take effect after that time.
//
// Every failure is a denial, never an HTTP error: an error would apply the plugin's defaultAllow,
// which covers all policies at once. The pod's annotations in a review are ignored.
package imagepolicy
