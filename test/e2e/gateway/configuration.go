package gateway

// Configuration has the fields of quaymaster's configuration file that tests set; the others
// have their defaults. The file is read strictly, so a field that is no longer there fails
// every test.
type Configuration struct {
	// Mode is enforce, which is the default, or shadow.
	Mode       string `json:"mode,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	Standalone bool   `json:"standalone,omitempty"`
	// Roles of the process; empty means all.
	Roles      []string `json:"roles,omitempty"`
	Guard      string   `json:"guard,omitempty"`
	Kubernetes struct {
		Kubeconfig string `json:"kubeconfig,omitempty"`
	} `json:"kubernetes,omitzero"`
	Listen      Listen      `json:"listen,omitzero"`
	Webhooks    Webhooks    `json:"webhooks,omitzero"`
	Certificate Certificate `json:"certificate,omitzero"`
	Policies    struct {
		Folders     []string `json:"folders,omitempty"`
		Selector    string   `json:"selector,omitempty"`
		WriteStatus string   `json:"writeStatus,omitempty"`
		// NativePolicies are off, requested or auto; empty means that they are left alone.
		NativePolicies string   `json:"nativePolicies,omitempty"`
		Audit          []string `json:"audit,omitempty"`
		Expressions    struct {
			HTTPHosts []string `json:"httpHosts,omitempty"`
		} `json:"expressions,omitzero"`
	} `json:"policies,omitzero"`
	Exceptions struct {
		Namespaces []string `json:"namespaces,omitempty"`
	} `json:"exceptions,omitzero"`
	Mirrors struct {
		Files      []string `json:"files,omitempty"`
		ConfigMaps []string `json:"configMaps,omitempty"`
	} `json:"mirrors,omitzero"`
	Endpoints  Endpoints `json:"endpoints,omitzero"`
	Registries struct {
		// Hosts by name and port.
		Hosts       map[string]Host `json:"hosts,omitempty"`
		PullSecrets []string        `json:"pullSecrets,omitempty"`
	} `json:"registries,omitzero"`
	// Requirements are for images of any name.
	Requirements []Requirement `json:"requirements,omitempty"`
	Trust        struct {
		TrustedRoot string            `json:"trustedRoot,omitempty"`
		Refresh     bool              `json:"refresh,omitempty"`
		CacheFolder string            `json:"cacheFolder,omitempty"`
		RetiredKeys map[string]string `json:"retiredKeys,omitempty"`
	} `json:"trust,omitzero"`
	Ages     Ages `json:"ages,omitzero"`
	Snapshot struct {
		Interval string `json:"interval,omitempty"`
	} `json:"snapshot,omitzero"`
	Limits struct {
		Requests int `json:"requests,omitempty"`
	} `json:"limits,omitzero"`
	Peers struct {
		Disabled bool   `json:"disabled,omitempty"`
		Address  string `json:"address,omitempty"`
	} `json:"peers,omitzero"`
	SharedMemory struct {
		Address string `json:"address,omitempty"`
		Timeout string `json:"timeout,omitempty"`
	} `json:"sharedMemory,omitzero"`
	DecisionLog struct {
		Folder  string `json:"folder,omitempty"`
		Fsync   string `json:"fsync,omitempty"`
		Webhook struct {
			URL string `json:"url,omitempty"`
		} `json:"webhook,omitzero"`
	} `json:"decisionLog,omitzero"`
	Dashboard struct {
		Address     string `json:"address,omitempty"`
		TokenReview bool   `json:"tokenReview,omitempty"`
	} `json:"dashboard,omitzero"`
	Reports Reports `json:"reports,omitzero"`
	Scan    Scan    `json:"scan,omitzero"`
	Cleanup Cleanup `json:"cleanup,omitzero"`
	Log     struct {
		Level string `json:"level,omitempty"`
	} `json:"log,omitzero"`
}

// Reports selects the reports that are written.
type Reports struct {
	APIs        *[]string `json:"apis,omitempty"`
	GroupBy     string    `json:"groupBy,omitempty"`
	Results     []string  `json:"results,omitempty"`
	CountPasses bool      `json:"countPasses,omitempty"`
	MaxResults  int       `json:"maxResults,omitempty"`
}

// Scan configures the scan of running workloads.
type Scan struct {
	Disabled bool    `json:"disabled,omitempty"`
	Interval string  `json:"interval,omitempty"`
	QPS      float32 `json:"qps,omitempty"`
	Follow   *bool   `json:"follow,omitempty"`
}

// Cleanup configures the deletion of objects.
type Cleanup struct {
	TTL          bool     `json:"ttl,omitempty"`
	Limit        int      `json:"limit,omitempty"`
	AllowedKinds []string `json:"allowedKinds,omitempty"`
	QPS          float32  `json:"qps,omitempty"`
}

// Listen has the gateway's addresses; Start chooses the empty ones.
type Listen struct {
	// Address of the TLS endpoints.
	Address string `json:"address,omitempty"`
	// Plain is the address of /metrics, /healthz and /readyz.
	Plain           string   `json:"plain,omitempty"`
	Profiling       string   `json:"profiling,omitempty"`
	DrainDelay      string   `json:"drainDelay,omitempty"`
	ClientCA        string   `json:"clientCA,omitempty"`
	ClientNames     []string `json:"clientNames,omitempty"`
	ClientEndpoints []string `json:"clientEndpoints,omitempty"`
	Socket          string   `json:"socket,omitempty"`
}

// Endpoints are those that are closed unless they are turned on.
type Endpoints struct {
	ImageReview  bool `json:"imageReview,omitempty"`
	ExternalData bool `json:"externalData,omitempty"`
	API          API  `json:"api,omitzero"`
}

// API lists the accounts that may call /api/v1/verify.
type API struct {
	Tokens      string   `json:"tokens,omitempty"`
	TokenReview bool     `json:"tokenReview,omitempty"`
	Audiences   []string `json:"audiences,omitempty"`
	Users       []string `json:"users,omitempty"`
	Groups      []string `json:"groups,omitempty"`
}

// Webhooks configures the registered webhooks.
type Webhooks struct {
	Disabled bool `json:"disabled,omitempty"`
	// URL that the API server calls; Start makes it from the address, unless there is a
	// Service.
	URL string `json:"url,omitempty"`
	// Service and Port by which it calls.
	Service            string    `json:"service,omitempty"`
	Port               int       `json:"port,omitempty"`
	ExcludedNamespaces *[]string `json:"excludedNamespaces,omitempty"`
	// Owner is the ClusterRole that owns the configurations.
	Owner             string   `json:"owner,omitempty"`
	MutateControllers []string `json:"mutateControllers,omitempty"`
}

// Certificate selects the served certificate.
type Certificate struct {
	Secret          string   `json:"secret,omitempty"`
	CertificateFile string   `json:"certificateFile,omitempty"`
	KeyFile         string   `json:"keyFile,omitempty"`
	CAFile          string   `json:"caFile,omitempty"`
	Names           []string `json:"names,omitempty"`
}

// Host configures the connection to a registry.
type Host struct {
	PlainHTTP bool   `json:"plainHTTP,omitempty"`
	CAFile    string `json:"caFile,omitempty"`
}

// Ages are durations such as 30s.
type Ages struct {
	Tag    string `json:"tag,omitempty"`
	Fact   string `json:"fact,omitempty"`
	None   string `json:"none,omitempty"`
	Secret string `json:"secret,omitempty"`
	Mirror string `json:"mirror,omitempty"`
	Stale  string `json:"stale,omitempty"`
}

// PlainHTTP sets registries to plain HTTP.
func (c *Configuration) PlainHTTP(hosts ...string) {
	if c.Registries.Hosts == nil {
		c.Registries.Hosts = map[string]Host{}
	}
	for _, host := range hosts {
		c.Registries.Hosts[host] = Host{PlainHTTP: true}
	}
}

// Requirement is what images must meet in addition to their policies.
type Requirement struct {
	Images     []string `json:"images,omitempty"`
	Namespaces []string `json:"namespaces,omitempty"`
	MinimumAge string   `json:"minimumAge,omitempty"`
}
