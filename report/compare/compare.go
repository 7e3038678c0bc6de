package compare

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// Compare compares the collected verdicts.
func (c *Collector) Compare(at time.Time) Comparison {
	for _, side := range []map[id]*engineVerdict{c.ours, c.theirs} {
		for _, s := range side {
			s.stale = c.isStale(s)
		}
	}
	r := &run{
		Collector: c, images: images{}, rows: map[row]*Difference{}, heard: map[*engineVerdict]bool{}, taken: map[*engineVerdict]bool{},
		named:  map[*engineVerdict][]imageName{},
		theirs: c.indexed(sorted(c.theirs)), ours: sorted(c.ours),
	}
	r.summary = Summary{Theirs: len(c.theirs), Ours: len(c.ours), Differ: map[Class]int{}, Unreadable: c.unreadable, LeftOut: c.leftOut}
	for _, class := range Classes() {
		r.summary.Differ[class] = 0
	}
	r.judge()
	differences := r.differences()
	more := max(0, len(differences)-MaxDifferences)
	costs, saved := c.costs()
	return Comparison{
		Time: at.UTC(), Summary: r.summary, Costs: costs, Saved: saved,
		Differences: differences[:len(differences)-more], More: more,
	}
}

// sorted orders verdicts, so that the result does not depend on map order.
func sorted(side map[id]*engineVerdict) []*engineVerdict {
	return slices.SortedFunc(maps.Values(side), func(a, b *engineVerdict) int {
		return cmp.Or(cmp.Compare(identity(a.object), identity(b.object)), cmp.Compare(a.policy.String(), b.policy.String()), cmp.Compare(a.rule, b.rule),
			cmp.Compare(a.container, b.container), cmp.Compare(a.written, b.written), cmp.Compare(a.engine, b.engine), a.at.Compare(b.at))
	})
}

// run is one comparison in progress.
type run struct {
	*Collector
	images images
	theirs *index
	ours   []*engineVerdict
	// heard are the other engine's verdicts that match one of ours, and taken those that were
	// compared.
	heard, taken map[*engineVerdict]bool
	named        map[*engineVerdict][]imageName
	rows         map[row]*Difference
	summary      Summary
}

// pair is one of our verdicts and its best match of the other engine.
type pair struct {
	ours, theirs *engineVerdict
	by           string
}

// judge finds the counterpart of each verdict. A denial of the other engine that names no image
// applies to an unknown image of its rule. It is compared with all of our verdicts of that rule
// together.
func (r *run) judge() {
	whole := map[*engineVerdict][]pair{}
	var order []*engineVerdict
	for _, ours := range r.ours {
		theirs, by := r.counterpart(ours)
		switch {
		case theirs == nil && ours.skipped:
		case theirs == nil:
			r.differ(OnlyHere, pair{ours: ours})
		case theirs.verdict == Admit || len(r.imagesOf(theirs)) > 0:
			r.heard[theirs], r.taken[theirs] = true, true
			r.weigh(pair{ours, theirs, by})
		default:
			r.heard[theirs], r.taken[theirs] = true, true
			if whole[theirs] == nil {
				order = append(order, theirs)
			}
			whole[theirs] = append(whole[theirs], pair{ours, theirs, by})
		}
	}
	for _, theirs := range order {
		r.weighWhole(whole[theirs])
	}
	r.judgeRest()
}

// judgeRest compares the remaining verdicts of the other engine: with our verdict on the same
// workload, or as a difference without counterpart.
func (r *run) judgeRest() {
	ours := r.indexed(r.ours)
	for _, theirs := range sorted(r.Collector.theirs) {
		if r.taken[theirs] || theirs.skipped || theirs.engine == APIServer {
			continue
		}
		all, by := ours.of(theirs.object, r.places(theirs.object))
		pairs := r.alike(theirs, all, by)
		switch {
		case r.heard[theirs] && by != byWorkload: // replaced by a newer verdict
		case len(pairs) == 0 && !r.heard[theirs]:
			r.differ(OnlyThere, pair{theirs: theirs})
		case len(pairs) == 0:
		case theirs.verdict == Admit || len(r.imagesOf(theirs)) > 0:
			for _, p := range pairs {
				r.weigh(p)
			}
		default:
			r.weighWhole(pairs)
		}
	}
}

// alike pairs a verdict of the other engine with our matching verdicts on one object.
func (r *run) alike(theirs *engineVerdict, all []*engineVerdict, by string) []pair {
	var pairs []pair
	for _, ours := range all {
		if len(pairs) > 0 && identity(pairs[0].ours.object) != identity(ours.object) {
			continue
		}
		if speaks(theirs, r.imagesOf(theirs), ours, r.nameOf(ours)) >= 0 {
			pairs = append(pairs, pair{ours, theirs, by})
		}
	}
	return pairs
}

// nameOf is the name of our verdict's image; nil for a verdict on the object.
func (r *run) nameOf(ours *engineVerdict) *imageName {
	if ours.written == "" {
		return nil
	}
	return r.images.of(ours.written, ours.digest)
}

// weighWhole compares a denial that names no image with our nearest verdict. The other pairs add
// nothing.
func (r *run) weighWhole(pairs []pair) {
	nearest := slices.MaxFunc(pairs, func(a, b pair) int { return cmp.Compare(a.ours.verdict.severity(), b.ours.verdict.severity()) })
	if nearest.ours.verdict != Admit {
		for _, p := range pairs {
			if p.ours.verdict == nearest.ours.verdict {
				r.weigh(p)
			}
		}
		return
	}
	r.weigh(nearest)
}

// counterpart returns the other engine's best match for one of our verdicts; of equal matches the
// newest. nil: there is none.
func (r *run) counterpart(ours *engineVerdict) (*engineVerdict, string) {
	all, by := r.theirs.of(ours.object, r.places(ours.object))
	name := r.nameOf(ours)
	var best, passes *engineVerdict
	score := 0
	for _, theirs := range all {
		if ours.policy.name == "" {
			// A verdict without a policy applies to the whole object, and so does the most severe
			// counterpart.
			if best == nil || theirs.verdict.severity() > best.verdict.severity() {
				best = theirs
			}
			r.heard[theirs] = true
			continue
		}
		s := speaks(theirs, r.imagesOf(theirs), ours, name)
		if s < 0 {
			if theirs.verdict == Admit && theirs.policy.name != "" && speaks(theirs, nil, ours, nil) >= 0 {
				passes = theirs // a passing rule passes for all images, whichever its message names
			}
			continue
		}
		r.heard[theirs] = true
		if best == nil || isNearer(theirs, s, best, score) {
			best, score = theirs, s
		}
	}
	if best == nil || best.engine == APIServer && passes != nil {
		best = cmp.Or(passes, best)
	}
	return best, by
}

// isNearer reports whether a verdict is a better match than another. A match of the rule outranks
// a match of the policy or the request, then the newer verdict, then a match of the image.
func isNearer(a *engineVerdict, score int, b *engineVerdict, than int) bool {
	at, before := a.at.Truncate(time.Second), b.at.Truncate(time.Second)
	switch {
	case min(score, ofRule) != min(than, ofRule):
		return score > than
	case !at.Equal(before):
		return at.After(before)
	case score != than:
		return score > than
	}
	return a.verdict.severity() > b.verdict.severity()
}

// imagesOf are the images that a verdict of the other engine names.
func (r *run) imagesOf(theirs *engineVerdict) []imageName {
	known, ok := r.named[theirs]
	if !ok {
		known = r.readImages(theirs)
		r.named[theirs] = known
	}
	return known
}

func (r *run) readImages(theirs *engineVerdict) []imageName {
	if theirs.written != "" {
		if name := r.images.of(theirs.written, ""); name != nil {
			return []imageName{*name}
		}
		return nil
	}
	if theirs.message == "" || theirs.engine == APIServer {
		return nil
	}
	return mentioned(theirs.message)
}

// weigh compares the verdicts of a pair.
func (r *run) weigh(p pair) {
	theirs, ours := p.theirs.verdict, p.ours.verdict
	switch {
	case theirs == Error && ours == Error:
		r.summary.NeitherLooked++
	case theirs == ours, p.theirs.engine == APIServer && p.ours.audited:
		r.summary.Agree++
	case ours == Error:
		r.differ(ErrorHere, p)
	case theirs == Error:
		r.differ(ErrorThere, p)
	case ours == Deny:
		r.differ(WronglyAdmitted, p)
	default:
		r.differ(DeniedOnlyThere, p)
	}
}

// row joins equal differences of all objects of one workload.
type row struct {
	class                                Class
	workload, policy, rule               string
	container, image                     string
	theirEngine                          Engine
	theirWord, ourWord                   Verdict
	theirMessage, ourCode, ourMessage    string
	theirsStale, oursStale, onlyToldHere bool
}

// differ adds a difference to its row.
func (r *run) differ(class Class, p pair) {
	r.summary.Differ[class]++
	theirs, ours := p.theirs, p.ours
	if ours != nil && !ours.audited && class != DeniedOnlyThere && (theirs == nil || theirs.verdict != Deny) {
		switch ours.verdict {
		case Deny:
			r.summary.Newly++
		case Error:
			r.summary.NewErrors++
		}
	}
	if ours != nil && ours.stale || theirs != nil && theirs.stale {
		r.summary.Stale++
	}
	leading := ours
	if leading == nil {
		leading = theirs
	}
	kind, name := leading.object.Kind, leading.object.Name
	example := ""
	if places := r.places(leading.object); len(places) > 0 {
		if leading.object.Name != "" {
			example = kind + "/" + name
		}
		last := splitted(places[len(places)-1])
		kind, name = last[0], last[2]
	}
	key := row{
		class: class, workload: nameOf(kind, leading.object.Namespace, name), policy: leading.policy.String(), rule: baseRule(leading.rule),
		container: leading.container, image: leading.written,
	}
	if theirs != nil {
		key.theirEngine, key.theirWord, key.theirMessage, key.theirsStale = theirs.engine, theirs.verdict, theirs.message, theirs.stale
	}
	if ours != nil {
		key.ourWord, key.ourCode, key.ourMessage, key.oursStale, key.onlyToldHere = ours.verdict, ours.code, ours.message, ours.stale, ours.audited
	}
	if have := r.rows[key]; have != nil {
		have.Objects++
		return
	}
	made := &Difference{
		Class: class, Kind: kind, Namespace: leading.object.Namespace, Name: name, Objects: 1, Example: example, Container: leading.container,
		Image: leading.written, Digest: leading.digest, Rule: leading.rule, MatchedBy: p.by, Theirs: sideOf(theirs), Ours: sideOf(ours),
	}
	if leading.policy.name != "" {
		made.Policy = leading.policy.String()
	}
	r.rows[key] = made
}

func sideOf(s *engineVerdict) *Side {
	if s == nil {
		return nil
	}
	return &Side{
		Engine: s.engine, Verdict: s.verdict, Audited: s.audited, Code: s.code, Message: s.message, Where: s.where, Time: s.at.UTC(), Stale: s.stale,
	}
}

// differences are the rows, the most dangerous first: by class, then enforced before audited,
// then by object.
func (r *run) differences() []Difference {
	all := make([]Difference, 0, len(r.rows))
	for _, d := range r.rows {
		all = append(all, *d)
	}
	slices.SortFunc(all, func(a, b Difference) int {
		return cmp.Or(
			cmp.Compare(slices.Index(Classes(), a.Class), slices.Index(Classes(), b.Class)),
			cmp.Compare(a.rank(), b.rank()),
			strings.Compare(a.Namespace, b.Namespace),
			strings.Compare(a.Kind, b.Kind),
			strings.Compare(a.Name, b.Name),
			strings.Compare(
				a.Policy,
				b.Policy,
			),
			strings.Compare(a.Rule, b.Rule),
			strings.Compare(a.Container, b.Container),
			strings.Compare(a.Image, b.Image),
			strings.Compare(a.differing(), b.differing()),
		)
	})
	return all
}

// rank orders the rows of a class.
func (d *Difference) rank() int {
	worst, told := 0, 0
	for _, side := range []*Side{d.Ours, d.Theirs} {
		if side == nil {
			continue
		}
		worst = max(worst, side.Verdict.severity())
		if side.Audited {
			told = 1
		}
	}
	return told - 2*worst
}

func (d *Difference) differing() string {
	text := ""
	for _, side := range []*Side{d.Theirs, d.Ours} {
		if side != nil {
			text += string(side.Engine) + string(side.Verdict) + side.Code + side.Message
		}
	}
	return text
}
