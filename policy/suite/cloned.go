package suite

import "fmt"

// readCloned reads the objects that rules copy. The rows may name an object several times, with the same
// content: there is one cluster.
func (s *loaded) readCloned() error {
	from := map[string]string{}
	for i := range s.Results {
		file := s.Results[i].CloneSource
		if file == "" {
			continue
		}
		objects, err := s.objects([]string{file}, "cloneSourceResource")
		if err != nil {
			return err
		}
		for _, object := range objects {
			text := string(object.JSON())
			switch had, known := from[keyOf(object)]; {
			case !known:
				from[keyOf(object)] = text
				s.cluster.Add(object)
			case had != text:
				return fmt.Errorf("cloneSourceResource: %s: %s has other content in an earlier row: give it another name", file, title(object))
			}
		}
	}
	return nil
}
