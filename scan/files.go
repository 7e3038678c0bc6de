package scan

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/workload"
)

// Files is a Cluster of objects from files. It is immutable. Create one with NewFiles.
type Files struct {
	kinds   []Kind
	objects map[Kind][]workload.Object
}

var _ Cluster = (*Files)(nil)

// NewFiles creates Files of objects. The resource of a kind that is not in kinds is unknown.
func NewFiles(objects []workload.Object, kinds []constraint.Resource) *Files {
	f := &Files{objects: map[Kind][]workload.Object{}}
	known := map[[2]string]Kind{}
	for _, o := range objects {
		if kind, is := known[[2]string{o.APIVersion(), o.Kind()}]; is {
			f.objects[kind] = append(f.objects[kind], o)
			continue
		}
		kind := Kind{Group: o.Group(), Version: o.Version(), Kind: o.Kind(), Namespaced: o.Namespace() != "", IsOfFiles: true}
		if i := slices.IndexFunc(kinds, func(r constraint.Resource) bool { return r.Group == o.Group() && r.Kind == o.Kind() }); i >= 0 {
			kind.Resource = kinds[i].Name
		}
		known[[2]string{o.APIVersion(), o.Kind()}], f.kinds = kind, append(f.kinds, kind)
		f.objects[kind] = append(f.objects[kind], o)
	}
	return f
}

// Kinds implements Cluster.
func (f *Files) Kinds(context.Context) ([]Kind, error) { return f.kinds, nil }

// List implements Cluster.
func (f *Files) List(_ context.Context, kind Kind, from string, most int) (Page, error) {
	all, at := f.objects[kind], 0
	if from != "" {
		var err error
		at, err = strconv.Atoi(from)
		if err != nil || at < 0 || at > len(all) {
			return Page{}, errors.New("a page of files begins at none of them: " + strconv.Quote(from))
		}
	}
	end := min(at+most, len(all))
	page := Page{Objects: all[at:end], Remaining: int64(len(all) - end)}
	if end < len(all) {
		page.Continue = strconv.Itoa(end)
	}
	return page, nil
}
