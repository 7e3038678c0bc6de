package bill

// spdx is an SPDX 2.3 document, limited to the fields that Write uses.
type spdx struct {
	SPDXID        string         `json:"SPDXID"`
	Version       string         `json:"spdxVersion"`
	DataLicense   string         `json:"dataLicense"`
	Name          string         `json:"name"`
	Namespace     string         `json:"documentNamespace"`
	Creation      creation       `json:"creationInfo"`
	Describes     []string       `json:"documentDescribes"`
	Packages      []packaged     `json:"packages"`
	Relationships []relationship `json:"relationships"`
}

type creation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type packaged struct {
	ID         string      `json:"SPDXID"`
	Name       string      `json:"name"`
	Version    string      `json:"versionInfo,omitempty"`
	Location   string      `json:"downloadLocation"`
	Analyzed   bool        `json:"filesAnalyzed"`
	Concluded  string      `json:"licenseConcluded"`
	Declared   string      `json:"licenseDeclared"`
	Purpose    string      `json:"primaryPackagePurpose,omitempty"`
	Comment    string      `json:"comment,omitempty"`
	Checksums  []checksum  `json:"checksums,omitempty"`
	References []reference `json:"externalRefs,omitempty"`
}

type checksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type reference struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type relationship struct {
	Element string `json:"spdxElementId"`
	Type    string `json:"relationshipType"`
	Related string `json:"relatedSpdxElement"`
}
