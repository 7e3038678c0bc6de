package redis_test

import (
	"fmt"

	"github.com/quaymaster/quaymaster/cache/redis"
)

// A memory that replicas share is refused without a key that is worth it; a server
// that is not there is no reason to refuse.
func Example() {
	config := redis.Config{
		Address: "localhost:6379",
		Keys:    func() ([]byte, [][]byte) { return []byte("replicas"), nil },
	}
	_, err := redis.New(config)
	fmt.Println(err)

	config.Keys = func() ([]byte, [][]byte) { return []byte("thirty-two random bytes at least"), nil }
	store, err := redis.New(config)
	fmt.Println(err, store.Status().Unavailable)
	store.Close()
	// Output:
	// shared cache: no usable key of the replicas: the replicas' key has 8 bytes: want at least 32 random ones
	// <nil> false
}
