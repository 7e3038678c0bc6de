package predicate

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/attest"
)

// BillOfMaterials is the common content of SPDX 2.x and CycloneDX 1.x: the components of an
// artifact.
type BillOfMaterials struct {
	// Format is SPDX or CycloneDX, Version that of the format, as in 2.3.
	Format, Version string
	// Name is the document's, or its main component's.
	Name string
	// Created is zero if the document has no time.
	Created time.Time
	// Tools are the generators of the document.
	Tools      []string
	Components []Component
}

// Component is a part of the artifact.
type Component struct {
	Name, Version string
	// PackageURL is the purl; may be empty.
	PackageURL string
	// Licenses are SPDX expressions or names.
	Licenses []string
}

// ParseBillOfMaterials parses SPDX 2.x or CycloneDX 1.x, both as JSON. cosign also attaches SPDX
// in its tag-value form, as a text: then only the version is parsed and Components is empty.
func ParseBillOfMaterials(s attest.Statement) (BillOfMaterials, error) {
	switch {
	case s.PredicateType == attest.PredicateCycloneDX || strings.HasPrefix(s.PredicateType, attest.PredicateCycloneDX+"/"):
		return parseCycloneDX(s)
	case s.PredicateType == attest.PredicateSPDX || strings.HasPrefix(s.PredicateType, attest.PredicateSPDX+"/"):
		return parseSPDX(s)
	}
	return BillOfMaterials{}, fmt.Errorf("predicate type %q is neither %s nor %s", s.PredicateType, attest.PredicateSPDX, attest.PredicateCycloneDX)
}

type spdx struct {
	SPDXVersion  string
	Name         string
	CreationInfo struct {
		Created  time.Time
		Creators []string
	}
	Packages []struct {
		Name             string
		VersionInfo      string
		LicenseConcluded string
		LicenseDeclared  string
		ExternalRefs     []struct{ ReferenceType, ReferenceLocator string }
	}
}

func parseSPDX(s attest.Statement) (BillOfMaterials, error) {
	text, isText, err := textual(s)
	if err != nil {
		return BillOfMaterials{}, err
	}
	if isText {
		if !strings.HasPrefix(strings.TrimSpace(text), "{") {
			return tagValue(text)
		}
		s.Predicate = json.RawMessage(text)
	}
	var wire spdx
	if err := decode(s, &wire, s.PredicateType); err != nil {
		return BillOfMaterials{}, err
	}
	version, ok := strings.CutPrefix(wire.SPDXVersion, "SPDX-")
	if !ok {
		return BillOfMaterials{}, errors.New("SPDX document: it has no spdxVersion")
	}
	b := BillOfMaterials{Format: "SPDX", Version: version, Name: wire.Name, Created: wire.CreationInfo.Created}
	for _, creator := range wire.CreationInfo.Creators {
		if tool, ok := strings.CutPrefix(creator, "Tool: "); ok {
			b.Tools = append(b.Tools, tool)
		}
	}
	for _, p := range wire.Packages {
		c := Component{Name: p.Name, Version: p.VersionInfo}
		for _, ref := range p.ExternalRefs {
			if ref.ReferenceType == "purl" {
				c.PackageURL = ref.ReferenceLocator
			}
		}
		for _, license := range []string{p.LicenseConcluded, p.LicenseDeclared} {
			if license != "" && license != "NOASSERTION" && license != "NONE" {
				c.Licenses = append(c.Licenses, license)
				break
			}
		}
		b.Components = append(b.Components, c)
	}
	return b, nil
}

// textual returns a predicate that is a JSON string, as cosign's type spdx makes
// it, or that is wrapped as {"Data": "...", "Timestamp": "..."}, as cosign 1 did.
func textual(s attest.Statement) (string, bool, error) {
	var text string
	if json.Unmarshal(s.Predicate, &text) == nil && len(s.Predicate) > 0 && string(s.Predicate) != "null" {
		return text, true, nil
	}
	var wrapped struct {
		Data        json.RawMessage
		SPDXVersion string
	}
	if err := decode(s, &wrapped, s.PredicateType); err != nil {
		return "", false, err
	}
	if len(wrapped.Data) == 0 || wrapped.SPDXVersion != "" {
		return "", false, nil
	}
	if json.Unmarshal(wrapped.Data, &text) == nil {
		return text, true, nil
	}
	return string(wrapped.Data), true, nil
}

// tagValue reads the version of an SPDX document in tag-value form.
func tagValue(text string) (BillOfMaterials, error) {
	for line := range strings.Lines(text) {
		if version, ok := strings.CutPrefix(strings.TrimSpace(line), "SPDXVersion: SPDX-"); ok {
			return BillOfMaterials{Format: "SPDX", Version: version}, nil
		}
	}
	return BillOfMaterials{}, errors.New("SPDX document: it is text without SPDXVersion")
}

type cycloneDX struct {
	BOMFormat   string
	SpecVersion string
	Metadata    struct {
		Timestamp time.Time
		Component struct{ Name string }
		Tools     json.RawMessage
	}
	Components []struct {
		Name, Version, Purl string
		Licenses            []struct {
			Expression string
			License    struct{ ID, Name string }
		}
	}
}

func parseCycloneDX(s attest.Statement) (BillOfMaterials, error) {
	var wire cycloneDX
	if err := decode(s, &wire, s.PredicateType); err != nil {
		return BillOfMaterials{}, err
	}
	if wire.BOMFormat != "CycloneDX" || wire.SpecVersion == "" {
		return BillOfMaterials{}, errors.New("CycloneDX document: it has no bomFormat or specVersion")
	}
	b := BillOfMaterials{
		Format: "CycloneDX", Version: wire.SpecVersion, Name: wire.Metadata.Component.Name,
		Created: wire.Metadata.Timestamp, Tools: cycloneTools(wire.Metadata.Tools),
	}
	for _, c := range wire.Components {
		component := Component{Name: c.Name, Version: c.Version, PackageURL: c.Purl}
		for _, l := range c.Licenses {
			for _, license := range []string{l.Expression, l.License.ID, l.License.Name} {
				if license != "" {
					component.Licenses = append(component.Licenses, license)
					break
				}
			}
		}
		b.Components = append(b.Components, component)
	}
	return b, nil
}

// cycloneTools parses the tools, which are an object of components in 1.5 and a list before.
func cycloneTools(raw json.RawMessage) []string {
	type tool struct{ Name string }
	var list []tool
	if json.Unmarshal(raw, &list) != nil {
		var object struct{ Components []tool }
		_ = json.Unmarshal(raw, &object) // another form has no tools
		list = object.Components
	}
	var names []string
	for _, t := range list {
		if t.Name != "" {
			names = append(names, t.Name)
		}
	}
	return names
}
