ln -s "$CHECKOUT/deploy" deploy
