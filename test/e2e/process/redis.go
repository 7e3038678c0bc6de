package process

import (
	"context"
	"net"
	"os/exec"
	"time"
)

// RedisServer is the program that replicas share a memory by, as Debian installs it.
const RedisServer = "redis-server"

// redisTimeout bounds how long it may take until it listens.
const redisTimeout = time.Minute

// StartRedis runs one on loopback, which keeps nothing on disk, and returns when it listens at
// address. The error is exec.ErrNotFound where it is not installed.
func StartRedis(ctx context.Context, folder string) (server *Process, address string, err error) {
	path, err := exec.LookPath(RedisServer)
	if err != nil {
		return nil, "", err
	}
	address, err = FreeAddress(ctx)
	if err != nil {
		return nil, "", err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, "", err
	}
	server, err = Start(Options{
		Path: path, Folder: folder, Args: []string{"--bind", host, "--port", port, "--save", "", "--appendonly", "no"},
	})
	if err != nil {
		return nil, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, redisTimeout)
	defer cancel()
	if err := server.Await(ctx, func(ctx context.Context) error {
		connection, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return connection.Close()
	}); err != nil {
		server.Kill()
		return nil, "", err
	}
	return server, address, nil
}
