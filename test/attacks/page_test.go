package attacks

import (
	"flag"
	"fmt"
	"strings"
)

var update = flag.Bool("update", false, "write docs/attacks.md")

// opening is the page's text before its tables.
const opening = `# Attacks

Every tool of this field has had its bypass: a way to run an image that nobody
signed although a policy wants a signature. %d of them are replayed on every
change, at %d doors in all, by the product's own parts against a registry and
signers that lie. This page is written from the cases.

At *library* the engine is asked as the gateway and the command line wire it; at
*command line* the program runs, and its exit status counts; at *admission* an
AdmissionReview goes over HTTP through the mutating and then the validating
webhook, and what comes out is what counts.

Beside each attack the case has a control that differs in the one thing that is
wrong, and is admitted. A row says what is tried and what must happen. Sources
are advisories, issues of other projects, or weak spots found by reading them.

` + "    cd test && go test ./attacks" + `

The hostile registry, signers and repositories of trust are packages for your own tests,
too: ` + "`registry/registrytest`, `verify/verifytest` and `verify/trust/trusttest`." + `
`

// closing is the page's text behind its tables.
const closing = `
## Elsewhere

What a library, a command line or a webhook's door cannot decide is shown where it is
decided: by an API server, by the gateway's own connections, by the compiler of policies.

| Attack | Where | shown by |
|---|---|---|
| Somebody opens a namespace by its label who may not, or keeps it open. | a real API server | ` + "`TestBreakGlass`" + ` |
| A tenant writes an exception in a namespace of its own. | a real API server, the gateway's settings | ` + "`TestExceptions`, `TestNoExceptionNamespaces`" + ` |
| The mutating webhook is taken away; the record of what was written is forged. | a real API server | ` + "`TestBypassedMutation`, `TestTheRecordIsGuarded`" + ` |
| A user writes a static pod's mirror. | a real API server | ` + "`TestMirrorPod`" + ` |
| Another image runs in the gateway's own namespace. | a real API server, the gateway down | ` + "`TestOwnImages`" + ` |
| A policy's call, or a global entry's, goes to a host that nobody listed, or follows a redirect. | the gateway's calls | ` + "`TestCalls`, `TestGlobalServices`" + ` |
| A name resolves to this machine or a metadata service. | every connection that a stranger can name | ` + "`TestStrangersDoNotReachThisMachine`" + ` |
| A policy's call leads to Secrets, or changes something. | the client of the API server | ` + "`TestCall`" + ` |
| A Policy of a namespace names what is another's. | the compilers of policies | ` + "`TestPoliciesStayInTheirNamespace`, `TestEntryErrors`" + ` |

## What an attack costs

An attack ends within the time of its request, and costs the attacker: ` + "`TestAttacks/cost`" + `
runs the program on an image beside which each of these lies, and holds that it takes less than
64 MiB of memory more than a usual image, at most 1,000 requests, and the time of a
webhook.

    cd test && go test ./attacks -run TestAttacks/cost -v

Of one run on two cores, where a usual image takes 51 ms of processors and 12 MiB:

| Beside the image | Requests | Processors | Memory |
|---|---|---|---|
| a thousand bundles | 259 | 124 ms | 16 MiB |
| a thousand layers below cosign's tag | 4 | 64 ms | 14 MiB |
| ten thousand referrers | 131 | 135 ms | 16 MiB |
| a manifest that does not end | 3 | 72 ms | 22 MiB |
| a list of referrers that does not end | 13 | 65 ms | 15 MiB |
| a list with one entry of 31 MiB, where the registry does not filter | 4 | 117 ms | 24 MiB |
| a blob that does not end | 5 | 50 ms | 12 MiB |
| a list of referrers, or a manifest, that unpacks to a gibibyte | 3 | 49 ms | 12 MiB |

How others fare meanwhile is a benchmark: both webhooks about an image that is known, alone
at a hundred pods a second, and while somebody asks about one of those ten times a second, or
one after another where one takes longer. The attacker's registry is a process of its own that
runs when nobody else wants to: its processors are not the gateway's elsewhere.

    cd test && go test ./attacks -run '^$' -bench BesideAttacks -benchtime 2x

Of a run on two cores, what both webhooks together took beside the attack, for each
millisecond alone:

| Beside | half of the pods | on average | 99 % |
|---|---|---|---|
| a thousand bundles | 0.97 | 1.28 | 5.75 |
| a thousand layers below cosign's tag | 1.16 | 1.34 | 4.37 |
| ten thousand referrers | 0.84 | 1.28 | 4.71 |
| a manifest that does not end | 0.96 | 1.16 | 3.68 |
| a list of referrers that does not end | 0.90 | 0.94 | 1.78 |
| a list with one entry of 31 MiB | 0.82 | 1.23 | 4.80 |
| a blob that does not end | 0.99 | 1.02 | 1.26 |
| a list of referrers that unpacks to a gibibyte | 0.85 | 0.85 | 0.79 |
| a manifest that unpacks to a gibibyte | 0.96 | 0.98 | 1.10 |

Half of the pods are answered as fast as alone, in half a millisecond. On average they are
within a tenth beside four of the nine; beside the others the slowest hundredth waits for a
processor while an attack has both, some milliseconds.
`

// page is docs/attacks.md, and how many cases it has.
func page() (text string, cases int) {
	var rows strings.Builder
	doors := 0
	for _, subject := range subjects() {
		fmt.Fprintf(&rows, "\n## %s\n\n| Case | What | Source | Doors |\n|---|---|---|---|\n", subject.title)
		for _, a := range subject.attacks {
			names := make([]string, len(a.Doors))
			for i, d := range a.Doors {
				names[i] = string(d)
			}
			cases, doors = cases+1, doors+len(a.Doors)
			fmt.Fprintf(&rows, "| %s | %s | %s | %s |\n", a.Name, a.What, a.Source, strings.Join(names, ", "))
		}
	}
	return fmt.Sprintf(opening, cases, doors) + rows.String() + closing, cases
}
