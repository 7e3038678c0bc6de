// Package follow answers: what has changed since a scan listed it?
//
// A Follower watches the kinds that rounds of package scan list, from the version of the
// list on, and looks at each object that came or changed, within seconds and past the
// webhooks as well. It is told of metadata alone, keeps no object, and asks for one when
// it is its turn; a change of nothing but the status costs nothing, where the API server
// counts generations. What waits is bounded: of a kind of which more changes than can be
// asked for one by one, a round lists everything again.
//
// Watches follow the Kubernetes API's resourceVersion, bookmarks and 410 Gone.
package follow
