package attacks

import (
	"os"
	"path/filepath"
)

// flagsHead begins a file of flags.
const flagsHead = "apiVersion: quaymaster.dev/v1alpha1\nkind: Flags\n"

// exceptAdmin is a policy that leaves the images of one user out.
const exceptAdmin = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: images}
spec:
  validationFailureAction: Enforce
  background: false
  rules:
  - name: images
    match: {any: [{resources: {kinds: [Pod]}}]}
    exclude: {any: [{subjects: [{kind: User, name: admin}]}]}
    verifyImages:
    - {imageReferences: ['HOST/shop/*'], attestors: [{entries: [` + ofKey + `]}]}
`

// brings adds files to the folder that the program runs in, as a pull request does.
func (s *scene) brings(names []string, text string) {
	s.t.Helper()
	if s.checkout == "" {
		s.checkout = s.t.TempDir()
	}
	for _, name := range names {
		path := filepath.Join(s.checkout, name)
		s.check(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600))
	}
}

// checkoutAttacks are attacks by files and variables next to the program.
func checkoutAttacks() []attack {
	return []attack{
		{
			"files-of-flags-in-a-checkout",
			"A pull request adds files of flags to the folder that CI runs the program in, under every name that a program might look for; they name a user that the policy leaves out. None of them is read. The same file named by --config on the command line is.",
			"npm: .npmrc of a project", only(commandLine), func(s *scene) {
				s.policies(exceptAdmin)
				unsigned := s.built("app").ByDigest()
				s.brings([]string{"admin.yaml"}, "apiVersion: cli.kyverno.io/v1alpha1\nkind: UserInfo\nmetadata: {name: admin}\nuserInfo: {username: admin}\n")
				s.brings([]string{
					"flags.yaml", ".flags.yaml", "quaymaster.yaml", ".quaymaster.yaml", "quaymaster.yml", ".quaymaster/flags.yaml", "quaymaster/flags.yaml",
					".config/quaymaster/flags.yaml", ".github/quaymaster.yaml", "deploy/flags.yaml",
				}, flagsHead+"commands: {verify: {userinfo: admin.yaml}}\n")
				s.refused(unsigned)
				s.environment = []string{"XDG_CONFIG_HOME=.config", "PWD=" + s.checkout}
				s.refused(unsigned)
				s.more = []string{"--config", "flags.yaml"}
				s.admitted(unsigned)
			},
		},
		{
			"flags-by-variables",
			"A pull request sets variables for flags, by a file that CI loads: another user, another key, a registry without TLS, no network, no log, another cluster. The program refuses to run. A variable that can make no result less strict is used.",
			"docs/cli.md: flags from other sources", only(commandLine), func(s *scene) {
				s.policies(exceptAdmin)
				signed := s.signed("app").ByDigest()
				for _, variable := range []string{
					"USERINFO=admin.yaml", "PLAIN_HTTP=registry.example", "OFFLINE=true", "KEY=https://keys.example/cosign.pub", "KEY=-", "MIRRORS=mirrors.yaml",
					"INSECURE_IGNORE_TLOG=true", "EFFECTIVE_TIME=2100-01-01T00:00:00Z", "FROM_CLUSTER=other", "REQUIRE_MATCH=false", "REGISTRY_CA=ca.pem",
				} {
					s.environment = []string{"QUAYMASTER_" + variable}
					s.refused(signed)
				}
				s.environment = []string{"QUAYMASTER_VERBOSE=true"}
				s.admitted(signed)
			},
		},
	}
}
