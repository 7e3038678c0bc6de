package main

import "time"

// stage is a part of a ramp: the number of users moves evenly to its number at the end.
type stage struct {
	name  string
	users int
	lasts time.Duration
}

// stages are those of a run: users come, stay, rush in, stay again and leave.
func stages(users int) []stage {
	return []stage{
		{"ramp up", users, 15 * time.Second},
		{"hold", users, 20 * time.Second},
		{"spike", 3 * users, 5 * time.Second},
		{"hold the spike", 3 * users, 10 * time.Second},
		{"ramp down", 0, 5 * time.Second},
	}
}

// at returns the number of users at a time after the start, and the index of the stage; past
// the end there are none, and the index is that of no stage.
func at(stages []stage, after time.Duration) (users, index int) {
	before := 0
	for i, s := range stages {
		if after < s.lasts {
			return before + int(float64(s.users-before)*float64(after)/float64(s.lasts)), i
		}
		before, after = s.users, after-s.lasts
	}
	return 0, len(stages)
}

// most is the largest number of users.
func most(stages []stage) (users int) {
	for _, s := range stages {
		users = max(users, s.users)
	}
	return users
}
