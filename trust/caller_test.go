package trust

import (
	"testing"
)

func TestReportsFromAHostsCertificate(t *testing.T) {
	agent := Caller{Host: "h1", UID: Nobody}
	for _, test := range []struct {
		Access Access
		host   string
		ok     bool
	}{
		{ForAgents, "h1", true}, {ForAgents, "h2", false}, {ForEveryone, "", false}, {ForOperator, "h1", false},
	} {
		if err := agent.May(test.Access, test.host); (err == nil) != test.ok {
			t.Errorf("h1's agent, access %d to %q: %v", test.Access, test.host, err)
		}
	}
}
