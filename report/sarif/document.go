package sarif

// The supported parts of the format. Names and order are the standard's.
type (
	document struct {
		Schema  string `json:"$schema"`
		Version string `json:"version"`
		Runs    []run  `json:"runs"`
	}
	run struct {
		Tool        tool           `json:"tool"`
		Invocations []invocation   `json:"invocations"`
		ColumnKind  string         `json:"columnKind"`
		Results     []result       `json:"results"`
		Properties  map[string]any `json:"properties"`
	}
	tool struct {
		Driver driver `json:"driver"`
	}
	driver struct {
		Name           string       `json:"name"`
		Version        string       `json:"version,omitempty"`
		InformationURI string       `json:"informationUri"`
		Rules          []rule       `json:"rules"`
		Notifications  []descriptor `json:"notifications,omitempty"`
	}
	rule struct {
		ID               string        `json:"id"`
		ShortDescription message       `json:"shortDescription"`
		Help             *message      `json:"help,omitempty"`
		HelpURI          string        `json:"helpUri"`
		Configuration    configuration `json:"defaultConfiguration"`
		Properties       tags          `json:"properties"`
	}
	descriptor struct {
		ID               string  `json:"id"`
		ShortDescription message `json:"shortDescription"`
	}
	configuration struct {
		Level string `json:"level"`
	}
	tags struct {
		Tags []string `json:"tags"`
	}
	message struct {
		Text string `json:"text"`
	}
	invocation struct {
		ExecutionSuccessful bool           `json:"executionSuccessful"`
		Notifications       []notification `json:"toolExecutionNotifications,omitempty"`
	}
	notification struct {
		Descriptor reference  `json:"descriptor"`
		Level      string     `json:"level"`
		Message    message    `json:"message"`
		Locations  []location `json:"locations,omitempty"`
	}
	reference struct {
		ID string `json:"id"`
	}
	result struct {
		RuleID       string            `json:"ruleId"`
		RuleIndex    int               `json:"ruleIndex"`
		Level        string            `json:"level"`
		Message      message           `json:"message"`
		Locations    []location        `json:"locations"`
		Fingerprints map[string]string `json:"partialFingerprints"`
		Suppressions []suppression     `json:"suppressions,omitempty"`
		Properties   properties        `json:"properties"`
	}
	properties struct {
		Result string `json:"result"`
		Policy string `json:"policy,omitempty"`
		Rule   string `json:"rule,omitempty"`
		Image  string `json:"image,omitempty"`
		// Pointer is the path of the image in its object (RFC 6901).
		Pointer   string `json:"pointer,omitempty"`
		Exception string `json:"exception,omitempty"`
	}
	suppression struct {
		Kind          string `json:"kind"`
		Status        string `json:"status"`
		Justification string `json:"justification"`
	}
	location struct {
		Physical physical  `json:"physicalLocation"`
		Logical  []logical `json:"logicalLocations,omitempty"`
	}
	physical struct {
		Artifact artifact `json:"artifactLocation"`
		Region   region   `json:"region"`
	}
	artifact struct {
		URI string `json:"uri"`
	}
	region struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn,omitempty"`
	}
	logical struct {
		Name          string `json:"name,omitempty"`
		QualifiedName string `json:"fullyQualifiedName"`
		Kind          string `json:"kind"`
	}
)
