# Both places run a block of the page.
kubectl create serviceaccount ci > .before.log
