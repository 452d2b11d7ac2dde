package vnet

import "testing"

func TestSelectorsChoose(t *testing.T) {
	web := map[string]string{"app": "web", "course": "net 1", "empty": ""}
	for text, want := range map[string]bool{
		"": true, "app=web": true, "app==web": true, "app=db": false, "app!=db": true, "app!=web": false, "stage!=x": true,
		"app": true, "!app": false, "!stage": true, "stage": false, "app=web, course=net 1": true, "app=web,stage=x": false, "empty=": true, "app=": false,
	} {
		s, err := ParseSelector(text)
		if err != nil || s.Chooses(web) != want {
			t.Errorf("%q chooses %v, %v", text, !want, err)
		}
	}
	for _, text := range []string{"=x", ",", "a,", "!", "!!a", "a!b=c", "!a=b"} {
		if s, err := ParseSelector(text); err == nil {
			t.Errorf("%q is read as %+v", text, s)
		}
	}
}
