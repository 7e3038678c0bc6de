package rulecontext

// Document is an entry of a rule's context as it is written.
type Document struct {
	Name            string             `json:"name"`
	ConfigMap       *configMapDocument `json:"configMap"`
	Variable        *variableDocument  `json:"variable"`
	APICall         *apiCallDocument   `json:"apiCall"`
	ImageRegistry   *imageDocument     `json:"imageRegistry"`
	GlobalReference *globalDocument    `json:"globalReference"`
}

type configMapDocument struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

type variableDocument struct {
	Value    any    `json:"value"`
	JMESPath string `json:"jmesPath"`
	Default  any    `json:"default"`
}

type apiCallDocument struct {
	URLPath  string           `json:"urlPath"`
	Method   string           `json:"method"`
	Data     []requestData    `json:"data"`
	Service  *serviceDocument `json:"service"`
	JMESPath string           `json:"jmesPath"`
	Default  any              `json:"default"`
}

type requestData struct {
	Key   string `json:"key"`
	Value any    `json:"value"`
}

type serviceDocument struct {
	URL      string       `json:"url"`
	CABundle string       `json:"caBundle"`
	Headers  []httpHeader `json:"headers"`
}

type httpHeader struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

type imageDocument struct {
	Reference                string               `json:"reference"`
	JMESPath                 string               `json:"jmesPath"`
	ImageRegistryCredentials *credentialsDocument `json:"imageRegistryCredentials"`
}

type credentialsDocument struct {
	AllowInsecureRegistry bool     `json:"allowInsecureRegistry"`
	Providers             []string `json:"providers"`
	Secrets               []string `json:"secrets"`
}

type globalDocument struct {
	Name     string `json:"name"`
	JMESPath string `json:"jmesPath"`
}
