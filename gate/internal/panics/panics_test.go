package panics

import "testing"

func TestCatch(t *testing.T) {
	if err := Catch(func() {}); err != nil {
		t.Errorf("without a panic: %v", err)
	}
	want := "internal error, which is a defect: no evidence"
	if err := Catch(func() { panic("no evidence") }); err == nil || err.Error() != want {
		t.Errorf("after a panic: got %v, want %s", err, want)
	}
}
