package given

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/quaymaster/quaymaster/policy"
)

// LoadUser reads the file of a requesting user. The file is complete: the user has no other
// role.
func LoadUser(path string) (policy.User, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return policy.User{}, err
	}
	var file struct {
		APIVersion   string          `json:"apiVersion"`
		Kind         string          `json:"kind"`
		Metadata     json.RawMessage `json:"metadata"`
		Roles        []string        `json:"roles"`
		ClusterRoles []string        `json:"clusterRoles"`
		Synchronize  any             `json:"synchronize"` // of the form that Kyverno uses internally
		UserInfo     struct {
			Username string              `json:"username"`
			UID      string              `json:"uid"`
			Groups   []string            `json:"groups"`
			Extra    map[string][]string `json:"extra"`
		} `json:"userInfo"`
	}
	if err := decode(text, &file); err != nil {
		return policy.User{}, fmt.Errorf("%s: %w", path, err)
	}
	if file.Kind != "" && file.Kind != "UserInfo" {
		return policy.User{}, fmt.Errorf("%s: %s is no UserInfo", path, file.Kind)
	}
	user := policy.User{
		Name: file.UserInfo.Username, UID: file.UserInfo.UID, Groups: file.UserInfo.Groups,
		Roles: file.Roles, ClusterRoles: file.ClusterRoles, RolesKnown: true,
	}
	if len(file.UserInfo.Extra) > 0 {
		user.Extra, err = json.Marshal(file.UserInfo.Extra)
		if err != nil {
			return policy.User{}, fmt.Errorf("%s: userInfo.extra: %w", path, err)
		}
	}
	return user, nil
}
