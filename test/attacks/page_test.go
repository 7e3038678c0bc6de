package attacks

import (
	"flag"
	"fmt"
	"strings"
)

var update = flag.Bool("update", false, "write docs/engineering/attacks.md")

// opening is the page's text before its tables.
const opening = `# Attacks

Every tool of this field has had its bypass: a way to run an unsigned
image although a policy requires a signature. %d of them are replayed on every
change, at %d endpoints in all, by the product's own parts against a malicious registry and
malicious signers. This page is written from the cases.

At *library* the engine is called with the wiring of the gateway and the command line; at
*command line* the program runs, and its exit status counts; at *admission* an
AdmissionReview goes over HTTP through the mutating and then the validating
webhook, and the final response counts.

Each case has a control that differs only in the attacked property, and is admitted. A row
has the attack and the required result. Sources
are advisories, issues of other projects, or weak spots found by reading them.

` + "    cd test && go test ./attacks" + `

The hostile registry, signers and repositories of trust are packages for your own tests,
too: ` + "`registry/registrytest`, `verify/verifytest` and `verify/trust/trusttest`." + `
`

// closing is the page's text behind its tables.
const closing = `
## Elsewhere

Attacks on other components are tested at those components: an API server, the gateway's own
connections, the compiler of policies.

| Attack | Where | shown by |
|---|---|---|
| A user without permission opens a namespace by its label, or keeps it open. | a real API server | ` + "`TestBreakGlass`" + ` |
| A tenant writes an exception in a namespace of its own. | a real API server, the gateway's settings | ` + "`TestExceptions`, `TestNoExceptionNamespaces`" + ` |
| The mutating webhook is removed; the annotation of the written image is forged. | a real API server | ` + "`TestBypassedMutation`, `TestTheRecordIsGuarded`" + ` |
| A user writes a static pod's mirror. | a real API server | ` + "`TestMirrorPod`" + ` |
| Another image runs in the gateway's own namespace. | a real API server, the gateway down | ` + "`TestOwnImages`" + ` |
| A policy's call, or a global entry's, goes to an unlisted host, or follows a redirect. | the gateway's calls | ` + "`TestCalls`, `TestGlobalServices`" + ` |
| A name resolves to this machine or a metadata service. | every connection with an untrusted name | ` + "`TestRemoteHostsDoNotReachLoopback`" + ` |
| A policy's call leads to Secrets, or changes something. | the client of the API server | ` + "`TestCall`" + ` |
| A copy of an image in another repository lacks its latest statement, or a registry returns a part of the statements. | the gate | ` + "`TestStatementsOfCopies`, `TestUnreadStatements`" + ` |
| A Policy of a namespace names objects of another. | the compilers of policies | ` + "`TestPoliciesStayInTheirNamespace`, `TestEntryErrors`" + ` |

## Cost of an attack

An attack ends within the time of its request, and costs the attacker: ` + "`TestAttacks/cost`" + `
runs the program on an image next to which each of these is stored, and checks that it takes less than
64 MiB of memory more than a usual image, at most 1,000 requests, and the time of a
webhook.

    cd test && go test ./attacks -run TestAttacks/cost -v

Of one run on two cores, where a usual image takes 51 ms of processors and 12 MiB:

| Next to the image | Requests | Processors | Memory |
|---|---|---|---|
| a thousand bundles | 259 | 124 ms | 16 MiB |
| a thousand layers below cosign's tag | 4 | 64 ms | 14 MiB |
| ten thousand referrers | 131 | 135 ms | 16 MiB |
| a manifest that does not end | 3 | 72 ms | 22 MiB |
| a list of referrers that does not end | 13 | 65 ms | 15 MiB |
| a list with one entry of 31 MiB, where the registry does not filter | 4 | 117 ms | 24 MiB |
| a blob that does not end | 5 | 50 ms | 12 MiB |
| a list of referrers, or a manifest, that unpacks to a gibibyte | 3 | 49 ms | 12 MiB |

The effect on other requests is a benchmark under the load of a [steady day](performance.md): a
hundred pods a second, of which one in twenty has a new image, 20 ms away; alone, and during an
attack with one of those images ten times a second, or one after
another where one takes longer. The client is a process of its own, like an API server, and so
is the attacker's registry, which runs at the lowest priority: its processors are not the
gateway's elsewhere.

    cd test && go test ./attacks -run '^$' -bench BesideAttacks -benchtime 5x

Of a run on two cores, the time of the webhook during the attack, for each millisecond without it: on
average of all pods, of those of new images and of cached ones, and the median and 99th percentile of these:

| Attack | all | new | cached | half of the cached | 99 % of them |
|---|---|---|---|---|---|
| a thousand bundles | 0.99 | 0.99 | 0.97 | 0.85 | 2.18 |
| a thousand layers below cosign's tag | 1.00 | 1.00 | 0.98 | 0.93 | 1.68 |
| ten thousand referrers | 1.03 | 1.01 | 1.10 | 0.91 | 3.46 |
| a manifest that does not end | 1.00 | 1.00 | 1.02 | 0.96 | 1.42 |
| a list of referrers that does not end | 1.00 | 1.00 | 0.99 | 0.94 | 1.49 |
| a list with one entry of 31 MiB | 1.10 | 1.03 | 1.39 | 1.07 | 4.92 |
| a blob that does not end | 1.00 | 1.00 | 1.00 | 1.00 | 0.95 |
| a list of referrers that unpacks to a gibibyte | 1.00 | 1.00 | 0.98 | 0.98 | 1.31 |
| a manifest that unpacks to a gibibyte | 1.01 | 1.01 | 1.00 | 0.97 | 1.27 |

Alone a cached image takes half a millisecond, and a new one 43, of which two round trips to its
registry are 40. So no attack slows a steady day by more than a tenth; the slowest hundredth of
the cached images waits some milliseconds for a processor. From run to run a figure differs by a tenth.
`

// page is docs/engineering/attacks.md, and how many cases it has.
func page() (text string, cases int) {
	var rows strings.Builder
	endpoints := 0
	for _, subject := range subjects() {
		fmt.Fprintf(&rows, "\n## %s\n\n| Case | What | Source | Endpoints |\n|---|---|---|---|\n", subject.title)
		for _, a := range subject.attacks {
			names := make([]string, len(a.Endpoints))
			for i, d := range a.Endpoints {
				names[i] = string(d)
			}
			cases, endpoints = cases+1, endpoints+len(a.Endpoints)
			fmt.Fprintf(&rows, "| %s | %s | %s | %s |\n", a.Name, a.What, a.Source, strings.Join(names, ", "))
		}
	}
	return fmt.Sprintf(opening, cases, endpoints) + rows.String() + closing, cases
}
