package quaymaster_test

// Reasons of exceptions.
const (
	planned = "the layout gives the package a budget of its own"
	mirrors = "mirrors a document, a settings file or a wire format field by field"

	oneObject = "images, rules, mirrors and overrides all decide on one object's verdict, and share its type"
	oneSearch = "the steps of one reference share its cached answers"
	checker   = "a bounded evaluation and the analysis of what an expression reads share the environment"
	fakes     = "a fake for every format and way of signing, for tests"
	record    = "the record of a decision and its text form, which show the same fields"
	onePass   = "the rules of all policies become one configuration in a pass"
	onePool   = "the parts of one controller, which share its queue"
	twice     = "each operator is there twice: as it is here, and as in Kyverno, so that no result demands less"
	oneRoot   = "every kind of trust material becomes one snapshot"
	oneClient = "what lower packages read of one API server"
	formats   = "each kind of evidence is found and parsed within the same bounds"
	results   = "one image's results from several engines"
	faults    = "a registry for tests, with faults"
	index     = "the indexes over one set of decisions"
	table     = "a table"
)

// budgets are those of the layout: lines of a package, a file and a function, parameters of a
// function, methods of a type, and fields of a struct.
var budgets = []budget{
	{
		name: "lines of a package", measured: func(s sizes) map[string]int { return s.packages }, limit: 1500,
		exceptions: map[string]exception{
			"gate":                 {3500, oneObject},
			"gate/evaluate":        {1740, oneSearch},
			"registry":             {2958, planned},
			"policy":               {2030, planned},
			"policy/lang/jmespath": {2500, planned},
			"policy/dialect/kyvernocel/imagevalidating": {3500, planned},
			"policy/lang/cel":                    {3090, checker},
			"webhook/admission":                  {2750, planned},
			"verify/verifytest":                  {3100, fakes},
			"report":                             {2900, record},
			"policy/dialect/sigstore":            {2540, planned},
			"webhook/configuration":              {1955, onePass},
			"background":                         {2610, onePool},
			"verify/trust":                       {2350, oneRoot},
			"cluster":                            {2301, oneClient},
			"attest":                             {2249, formats},
			"workload":                           {2010, planned},
			"report/compare":                     {2040, results},
			"policy/dialect/kyverno":             {1905, planned},
			"registry/registrytest":              {1800, faults},
			"policy/dialect/kyverno/match":       {1965, planned},
			"policy/lang/condition":              {1545, twice},
			"policy/dialect/kyverno/rulecontext": {1865, planned},
			"report/inventory":                   {1550, index},
			"policy/convert/cel":                 {2500, planned},
		},
	},
	{
		name: "lines of a file", measured: func(s sizes) map[string]int { return s.files }, limit: 400,
	},
	{
		name: "lines of a function", measured: func(s sizes) map[string]int { return s.functions }, limit: 60,
		exceptions: map[string]exception{
			"gate/gatetest.variants": {86, table},
		},
	},
	{
		name: "parameters of a function", measured: func(s sizes) map[string]int { return s.parameters }, limit: 5,
	},
	{
		name: "methods of a type", measured: func(s sizes) map[string]int { return s.methods }, limit: 25,
	},
	{
		name: "fields of a struct", measured: func(s sizes) map[string]int { return s.fields }, limit: 15,
		exceptions: map[string]exception{
			"cmd/quaymaster/config.Configuration":                         {30, mirrors},
			"policy/suite/document.Suite":                                 {25, mirrors},
			"webhook/metrics.Readings":                                    {24, mirrors},
			"policy/suite/document.Row":                                   {23, mirrors},
			"report/decisionlog.Decision":                                 {23, mirrors},
			"report/inventory.Inventory":                                  {22, mirrors},
			"policy/dialect/kyverno/verifyimages/imageverification.Entry": {21, mirrors},
			"gate.Outcome":                                                {18, oneObject},
			"report.Image":                                                {18, mirrors},
			"verify/verifytest.Identity":                                  {18, mirrors},
			"webhook/admission.Review":                                    {18, mirrors},
			"report.Redirection":                                          {17, mirrors},
			"verify/verifytest.Claim":                                     {16, mirrors},
		},
	},
}
